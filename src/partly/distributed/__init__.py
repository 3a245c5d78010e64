"""Several processes, on one machine or many, that train one model with the result of a single process.

Each process reads its share of a batch, and its network sees only that (`share`). The outputs of all networks are
gathered in every process; everything else is computed everywhere on the whole batch. Only the first process writes.

`launched` reads the rank that a launcher set (without torch), `group` communicates, and `layers` computes over whole
batches.
"""
