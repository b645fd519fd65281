"""Publication records like an export of the Web of Science that was converted from XML to JSON (`wos` in table 1 of
Alkowaileet and Carey, VLDB 2022). The records have long texts, and fields that are an object in some documents and an
array of objects in others.

Such a converter writes an element that occurs once as an object or a text, and a repeated element as an array.
Therefore, nearly every field has two types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from data_generator.dataset import Dataset
from data_generator.generated.documents.random_values import BLOCK, Draws, chosen, dataset
from data_generator.generated.words import WORDS

VERSION = 1

_COUNTRIES = (
    *("USA", "Peoples R China", "England", "Germany", "Japan", "France", "Canada", "Italy", "Spain", "Australia"),
    *("South Korea", "India", "Netherlands", "Brazil", "Switzerland", "Sweden", "Poland", "Taiwan", "Belgium"),
    *("Israel", "Scotland", "Denmark", "Austria", "Finland", "Norway", "Czech Republic", "Greece", "Portugal"),
)
_FIELDS = (
    *("Engineering", "Chemistry", "Physics", "Computer Science", "Materials Science", "Mathematics", "Surgery"),
    *("Biochemistry & Molecular Biology", "Pharmacology & Pharmacy", "Neurosciences & Neurology", "Oncology"),
    *("Environmental Sciences & Ecology", "Psychology", "Business & Economics", "Plant Sciences", "Astronomy"),
    *("Agriculture", "Geology", "Immunology", "Education & Educational Research", "Optics", "Zoology", "History"),
)
_NAMES = tuple(word.capitalize() for word in WORDS)
_MONTHS = ("JAN", "MAR", "APR", "JUN", "SEP", "NOV")
_DOCUMENT_TYPES = ("Article", "Proceedings Paper", "Review", "Meeting Abstract")
_FIRST_YEAR, _YEARS = 1980, 35


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` publications of 1980 to 2014, with a text as key."""
    return dataset(name, rows, "UID", VERSION, _publications)


def _publications(draws: Draws, first: int) -> Iterator[str]:
    return (_publication(draws, number) for number in range(first, first + BLOCK))


def _publication(draws: Draws, number: int) -> str:
    # A third of the publications have one author.
    drawn = draws.bits()
    people = 1 if drawn % 3 == 0 else 2 + (drawn >> 8) % 6
    addresses = 1 if people == 1 else 1 + (drawn >> 16) % min(people, 4)
    year = _FIRST_YEAR + (drawn >> 20) % _YEARS
    return (
        f'{{"UID":"WOS:{number:015d}","static_data":{{"summary":{_summary(draws, people, year)},'
        f'"fullrecord_metadata":{_metadata(draws, people, addresses)},"item":{_item(draws)}}},'
        f'"dynamic_data":{_dynamic(draws)}}}'
    )


def _one_or_many(items: Sequence[str]) -> str:
    """Return the JSON that the converter writes for elements of one name: an array, or the element itself if there is
    only one."""
    return items[0] if len(items) == 1 else f"[{','.join(items)}]"


def _texts(draws: Draws, most: int, words: int) -> list[str]:
    """Return one to `most` quoted texts of `words` words."""
    return [f'"{draws.words(words)}"' for _ in range(1 + draws.bits() % most)]


def _counted(name: str, items: Sequence[str]) -> str:
    """Return an element with the items, all named `name`, and the number of items."""
    return f'{{"count":{len(items)},"{name}":{_one_or_many(items)}}}'


def _person(draws: Draws, place: int) -> str:
    drawn = draws.bits()
    last, first = _NAMES[drawn % len(_NAMES)], _NAMES[(drawn >> 10) % len(_NAMES)]
    optional = ""
    if drawn >> 29 == 0:
        optional += f',"email_addr":"{last.lower()}@{first.lower()}.edu"'
    if drawn >> 26 & 7 == 0:
        optional += ',"suffix":"Jr"'
    if place == 1:
        optional += ',"reprint":"Y"'
    return (
        f'{{"seq_no":{place},"role":"author","daisng_id":{drawn},"display_name":"{last}, {first}",'
        f'"full_name":"{last}, {first}","wos_standard":"{last}, {first[0]}","last_name":"{last}",'
        f'"first_name":"{first}"{optional}}}'
    )


def _address(draws: Draws, place: int, people: Sequence[str]) -> str:
    drawn = draws.bits()
    city, country = _NAMES[drawn % len(_NAMES)], chosen(draws.bits(), _COUNTRIES)
    university = f"Univ {_NAMES[(drawn >> 10) % len(_NAMES)]}"
    organizations = [f'"{university}"']
    if drawn >> 31:
        organizations.append(f'{{"pref":"Y","content":"{university} System"}}')
    state = f',"state":"{city[:2].upper()}"' if country == "USA" else ""
    code = f',"zip":{{"location":"AP","content":{10_000 + (drawn >> 14) % 90_000}}}' if drawn >> 28 & 1 else ""
    inside = ""
    if drawn >> 29 & 1:
        departments = [f'"Dept {_NAMES[draws.bits() % len(_NAMES)]}"' for _ in range(1 + (drawn >> 27 & 1))]
        inside = f',"suborganizations":{_counted("suborganization", departments)}'
    return (
        f'{{"address_spec":{{"addr_no":{place},"full_address":"{university}, {city}, {country}",'
        f'"organizations":{_counted("organization", organizations)}{inside},"city":"{city}"{state},'
        f'"country":"{country}"{code}}},"names":{_counted("name", people)}}}'
    )


def _addresses(draws: Draws, count: int, people: int) -> str:
    """Return addresses with the people who work at each address, as JSON text."""
    members = [[_person(draws, place + 1) for place in range(place, people, count)] for place in range(count)]
    return _counted("address_name", [_address(draws, place + 1, found) for place, found in enumerate(members)])


def _summary(draws: Draws, people: int, year: int) -> str:
    drawn = draws.bits()
    begin = drawn % 900 + 1
    # Most volumes are numbers; supplements are texts.
    volume = f'"{drawn >> 22} SUPPL"' if drawn & 15 == 0 else str(drawn >> 22)
    issue = f',"issue":{1 + (drawn >> 10) % 12}' if drawn >> 9 & 1 else ""
    titles = [
        f'{{"type":"{kind}","content":"{draws.words(count)}"}}'
        for kind, count in (("source", 4), ("abbrev_iso", 3), ("item", 12))
    ]
    types = [f'"{chosen(draws.bits(), _DOCUMENT_TYPES)}"' for _ in range(1 + (drawn >> 4) % 8 // 7)]
    persons = [_person(draws, place + 1) for place in range(people)]
    conferences = ""
    if drawn >> 29 < 2:
        met = [_conference(draws, year) for _ in range(1 + (drawn >> 8) % 5 // 4)]
        conferences = f',"conferences":{_counted("conference", met)}'
    return (
        '{"EWUID":{"WUID":{"coll_id":"WOS"},"edition":{"value":"WOS.SCI"}},'
        f'"pub_info":{{"pubtype":"Journal","pubyear":{year},"pubmonth":"{_MONTHS[drawn % 6]}","vol":{volume}{issue},'
        f'"coverdate":"{_MONTHS[drawn % 6]} {year}","sortdate":"{year}-{1 + drawn % 12:02d}-01","has_abstract":"Y",'
        f'"page":{{"begin":{begin},"end":{begin + drawn % 17},"page_count":{drawn % 17 + 1},'
        f'"content":"{begin}-{begin + drawn % 17}"}}}},"titles":{{"count":3,"title":[{",".join(titles)}]}},'
        f'"names":{_counted("name", persons)},"doctypes":{_counted("doctype", types)}{conferences},'
        f'"publishers":{{"publisher":{_publisher(draws)}}}}}'
    )


def _conference(draws: Draws, year: int) -> str:
    drawn = draws.bits()
    city = _NAMES[drawn % len(_NAMES)]
    state = f'"conf_state":"{city[:2].upper()}",' if drawn >> 30 == 0 else ""
    sponsors = _counted("sponsor", _texts(draws, 3, 3))
    return (
        f'{{"conf_id":{drawn},"conf_infos":{{"count":1,"conf_info":"{draws.words(6)}"}},'
        f'"conf_titles":{_counted("conf_title", _texts(draws, 2, 8))},'
        f'"conf_dates":{{"count":1,"conf_date":{{"conf_start":{year}0601,"conf_end":{year}0604,'
        '"content":"JUN 01-04"}},'
        f'"conf_locations":{{"count":1,"conf_location":{{"conf_city":"{city}",{state}"conf_host":"{draws.words(2)}"}}}},'
        f'"sponsors":{sponsors}}}'
    )


def _publisher(draws: Draws) -> str:
    drawn = draws.bits()
    house, city = _NAMES[drawn % 60].upper(), _NAMES[drawn % 41].upper()
    return (
        f'{{"address_spec":{{"addr_no":1,"full_address":"{house} HOUSE, {city}","city":"{city}"}},'
        f'"names":{{"count":1,"name":{{"seq_no":1,"role":"publisher","addr_no":1,"display_name":"{house}",'
        f'"full_name":"{house} PUBLISHING","unified_name":"{house.title()}"}}}}}}'
    )


def _metadata(draws: Draws, people: int, addresses: int) -> str:
    drawn = draws.bits()
    languages = ['{"type":"primary","content":"English"}']
    if drawn & 31 == 0:
        languages.append('{"type":"secondary","content":"French"}')
    reprint = _addresses(draws, 1 + (drawn >> 5) % 12 // 11, 1 + (drawn >> 5) % 3)
    subjects = [
        f'{{"ascatype":"{kind}","code":"{field[:2].upper()}","content":"{field}"}}'
        for kind in ("traditional", "extended")
        for field in sorted({chosen(draws.bits(), _FIELDS) for _ in range(1 + (drawn >> 9) % 3)})
    ]
    headings = ['"Science & Technology"', '"Social Sciences"'][: 1 + (drawn >> 12) % 5 // 4]
    subheadings = ['"Life Sciences & Biomedicine"', '"Technology"'][: 1 + (drawn >> 15) % 2]
    keywords = f',"keywords":{_counted("keyword", _texts(draws, 6, 2))}' if drawn >> 17 & 3 else ""
    funding = f',"fund_ack":{_funding(draws)}' if drawn >> 19 & 1 else ""
    paragraphs = [f'"{draws.words(160 + draws.bits() % 80)}"']
    if drawn >> 21 & 3 == 0:
        paragraphs += [f'"{draws.words(40)}"' for _ in range(1 + (drawn >> 23 & 3))]
    return (
        f'{{"languages":{_counted("language", languages)},"normalized_languages":{{"count":1,"language":'
        f'{{"type":"primary","content":"English"}}}},"refs":{{"count":{drawn >> 25}}},'
        f'"addresses":{_addresses(draws, addresses, people)},"reprint_addresses":{reprint},'
        f'"category_info":{{"headings":{_counted("heading", headings)},'
        f'"subheadings":{_counted("subheading", subheadings)},'
        f'"subjects":{{"count":{len(subjects)},"subject":[{",".join(subjects)}]}}}}{keywords}{funding},'
        f'"abstracts":{{"count":1,"abstract":{{"abstract_text":{_counted("p", paragraphs)}}}}}}}'
    )


def _funding(draws: Draws) -> str:
    drawn = draws.bits()
    grants = []
    for place in range(1 + (drawn & 3)):
        numbers = [f'"{draws.code(9).upper()}"' for _ in range(1 + (drawn >> 2 + place) % 3)]
        if drawn >> 8 + place & 7 == 0:
            numbers = [str(draws.bits())]
        grants.append(
            f'{{"grant_agency":"{_NAMES[draws.bits() % 200]} Foundation","grant_source":"WOS",'
            f'"grant_ids":{_counted("grant_id", numbers)}}}'
        )
    texts = _texts(draws, 2, 30)
    return f'{{"fund_text":{{"p":{_one_or_many(texts)}}},"grants":{_counted("grant", grants)}}}'


def _item(draws: Draws) -> str:
    drawn = draws.bits()
    plus = f',"keywords_plus":{_counted("keyword", _texts(draws, 5, 2))}' if drawn & 3 else ""
    return (
        f'{{"coll_id":"WOS","ids":{{"avail":"N","content":"{draws.code(5).upper()}"}},'
        f'"bib_id":"{drawn >> 20} ({drawn & 7}): {drawn >> 18}-{(drawn >> 18) + 9} 2004",'
        f'"bib_pagecount":{{"type":"Journal","content":{drawn & 31}}}{plus}}}'
    )


def _dynamic(draws: Draws) -> str:
    drawn = draws.bits()
    identifiers = [
        f'{{"type":"{kind}","value":"{value}"}}'
        for kind, value in (("issn", f"{drawn % 10_000:04d}-{drawn >> 18:04d}"), ("doi", f"10.1016/{draws.code(10)}"))
    ][: 1 + (drawn & 1)]
    return (
        f'{{"citation_related":{{"tc_list":{{"silo_tc":{{"local_count":{drawn * drawn >> 57},"coll_id":"WOS"}}}}}},'
        f'"cluster_related":{{"identifiers":{{"identifier":{_one_or_many(identifiers)}}}}}}}'
    )
