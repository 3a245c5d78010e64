"""Several processes, on one machine or many, that train one model as one process would.

Each reads its share of a batch, and its network sees that alone (`share`). What networks make of all shares is gathered
in every process; from there on everything is computed everywhere, of the whole batch, as one process would. Only the
first process writes.

`launched` is what a launcher has said (it needs no torch), `group` how the processes talk to each other, `layers` what
a network computes of a whole batch.
"""
