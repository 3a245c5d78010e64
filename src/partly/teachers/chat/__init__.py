"""Questions to a language model behind an OpenAI-compatible endpoint: build a request, send it, parse the reply.

`request`, `send` and `parse` are functions without state. `replies` stores every reply by the SHA-256 of its request,
`limits` enforces the caps, `client` sends many requests at a time, `annotator` asks about items and labels, and
`batch` and `forecast` serve `partly teach`.
"""
