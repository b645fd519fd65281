"""Operations on documents: storing documents with changes among them, finding documents by key, reading fields, and
answering questions.

Saving and reading all documents are in bench_runner.operations.whole, as for tables and images.
"""
