"""Several fields of one thing, compared by name."""


def assert_fields(thing: object, **expected: object) -> None:
    """Fail unless these fields are as expected."""
    assert {name: getattr(thing, name) for name in expected} == expected
