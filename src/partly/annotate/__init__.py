"""The annotation server: web pages that ask single yes / no questions about an item and a label.

- `project` opens data and ledger; `tables` defines the tables next to the ledger's; `label_state` aligns the labels
- `server` runs everything; `app`, `pages`, `api`, `app_context` are the web application; `security_middleware`,
  `connections`, `limits` protect it
- `accounts`, `links`, `passwords` manage people; `question_queue` hands out questions; `adjudication`, `importing`
- `trainer` (a process, watched by `trainer_supervisor`) trains models and selects questions (`question_selection`)
- `stats`, `query_gain`, `auditing`, `dashboard` measure
"""
