"""Evidence for and against the claims of the papers: experiments, their results, and the pages made from both.

Not part of the installed package. Run it from the root of the project:

    python -m evidence run [--smoke]      run the experiments (hours; stopped, it resumes)
    python -m evidence pages [--check]    write docs/results.md, its pages and docs/claims.md
    python -m evidence claims             print which claims hold
"""
