"""How private a column of the archive is: what retention goes by, and what the dictionary says of it.

By name, since a name means the same everywhere; numbers, times and truth values under a name of words are counts of
what the words stand in, and tell of behaviour. A column that is in no class is an error: whoever adds one decides.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Privacy(StrEnum):
    """Classes of columns, the most private first."""

    CONTENT = "content"
    """Words of people, or made of their words."""
    IDENTIFIER = "identifier"
    """Names a session, a user, or what is tied to one."""
    BEHAVIOUR = "behaviour"
    """Tells how somebody behaved or was judged, in numbers and fixed words."""
    OPERATIONAL = "operational"
    """Tells how the system ran: apps, places in the log, sizes, versions."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BY_CLASS = {
    Privacy.CONTENT: _names(
        "content content_exact title summary key_topics repeated_topics before after new_content chunk "
        "conversation episode memory pending messages embedding extra facts headers history key value metadata "
        "note reason tags retractions subject context doubts"
    ),
    Privacy.IDENTIFIER: _names(
        "id ids session_id user_id alert_id item_id conversation_id topic_id memory_id merged_memory_id "
        "target_memory_id source_id target_id pending_id request_id archived_ids merged mentioned_items "
        "mentioned_sessions mentioned_users related_conversations shared_with short_term seen by fingerprint "
        "conflicts_with results project_id slot active_facts closed_by linked_memories merged_ids "
        "milestones participants relationships sources"
    ),
    Privacy.BEHAVIOUR: _names(
        "access_count action active active_turns category detail alerts archived born bytes_after bytes_before "
        "cause chunks compaction compactions complete compressed_turns confidence consolidated consolidated_at "
        "content_bytes conversations count created created_at decay_updated duplicate_turns edited ended_at "
        "energy_units episodes episodes_merged escalating escalation evidence fired_at first_turn half_life_days "
        "how hypothetical_count imperative_count importance kept kind last_active_at last_turn late_turns "
        "mean_risk memories memories_archived memories_looked_at memory_type message_count meta_instruction_count "
        "mode mode_transitions notifications open outcome packed_bytes packed_turns peak_risk pending_dropped "
        "pinned priority probability probing_attempts promoted purge_memories question_count relation "
        "released_messages reopened requested_turns revision risk risk_max risk_mean risk_source risk_sum role "
        "scope score scored_turns session_topics sessions severity signals skipped slope space started_at status "
        "strength suspicion timestamp tokens tokens_after tokens_before tokens_reclaimed topic_changes turn "
        "turn_count turn_range turns turns_per_minute type uninstalled updated_at valid_from valid_until waiting "
        "window_end window_start decay_factor emotional_valence extracted_at first_at first_number known_until "
        "labelled_at last_accessed_at last_at last_number loss mentions origin probes probes_found recent recorded_at "
        "given released_turns significance summary_tokens token_count total_turns user_turns"
    ),
    Privacy.OPERATIONAL: _names(
        "app app_id appended_at date method route decided_by done_at privacy rows table_name what elapsed_ms "
        "embedded_by energy_capacity_units extracted_by failure fallback first_offset judge kafka_offset "
        "kafka_partition landed_at last_offset made_by next_offset offset partition policy_digest policy_version "
        "record_bytes request requested_at run source source_appended_at spent_units stage stores summarised_by topic "
        "codec model partitions ratio threshold"
    ),
}
_OF_NAME = {name: privacy for privacy, names in _BY_CLASS.items() for name in names}
_CODED = {
    "reason": _names("alerts alert_changes dead_letters episodes app_memory_skips memory_skips skipped"),
}
"""Tables and views in which a column of words holds only ours: codes, names of signals, figures."""
_NESTED_ID = re.compile(r'"(session_id|user_id|owner|topic_id|memory_id|item_id|request_id|id)" VARCHAR')
"""A structure that names somebody, whatever it is called."""
_NUMBER = re.compile(r"^(BIGINT|INTEGER|DOUBLE|BOOLEAN|DATE|TIMESTAMP)")


def privacy_of(column: str, sql_type: str = "", *, table: str = "") -> Privacy:
    """The class of a column, of any table or view if none is named.

    >>> privacy_of("content").value, privacy_of("episode", "BIGINT").value, privacy_of("reason", table="alerts").value
    ('content', 'behaviour', 'behaviour')

    Raises:
        KeyError: It is in no class: put it into one.
    """
    privacy = _OF_NAME[column]
    if _NESTED_ID.search(sql_type) and privacy in {Privacy.BEHAVIOUR, Privacy.OPERATIONAL}:
        return Privacy.IDENTIFIER
    if privacy is Privacy.CONTENT and (_NUMBER.match(sql_type) or table in _CODED.get(column, ())):
        return Privacy.BEHAVIOUR
    return privacy
