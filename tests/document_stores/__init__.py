"""Tests of document_stores."""
