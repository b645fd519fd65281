"""Tests of the language: plans, their JSON form, their meaning."""
