"""HTML pages: the report of a run, its sections and charts, and the templates of all pages."""
