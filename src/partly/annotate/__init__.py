"""The pages where people answer: single questions about an item and a label, chosen well, kept in a ledger.

- `project` (data, ledger, plan), `records` (tables beside the ledger's), `known` (the fold, as these pages need it)
- `people` (who may come in), `doors` (what every request passes), `app` (routes and who may use them), `pages`, `calls`
- `desk` (questions posed, held, answered, taken back), `seen` (what people see of an item), `importing`
- `chosen` (which questions), `worth` (what choosing saved), `figures` and `dashboard` (numbers)
- `trainer` (a process of its own), `keeper` (keeps it going), `serving` (all of it, until Ctrl-C)
"""
