"""What the pages take from the registry of formats is what the registry says now."""

import pytest

from tests.generated_docs import COMMAND, PAGES, ROOT, renewed


@pytest.mark.parametrize("name", PAGES)
def test_what_is_generated_is_up_to_date(name: str) -> None:
    page = (ROOT / name).read_text()
    assert "<!-- generated: " in page
    if page != renewed(page):
        pytest.fail(f"{name} says otherwise than the registry of formats; renew it: {COMMAND}", pytrace=False)
