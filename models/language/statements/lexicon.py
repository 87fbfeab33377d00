"""Technologies by the slot that they fill, words that name a slot, and words that tell a category.

A slot is what one technology takes the place of another in: two databases are rivals, a database and a cache are not.
Names that are ordinary words too ("go", "rest", "express") count only where something is chosen, as all names do.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.text.words import word_set

_SLOTS = {
    "database": (
        "postgresql postgres=postgresql mysql mariadb sqlite mongodb mongo=mongodb cockroachdb oracle dynamodb "
        "cassandra clickhouse duckdb firestore firebase couchdb neo4j timescaledb sql_server snowflake bigquery "
        "scylladb influxdb"
    ),
    "vector database": "qdrant pinecone weaviate milvus pgvector chroma",
    "cache": "redis memcached valkey varnish",
    "message queue": "kafka rabbitmq nats sqs pulsar activemq redpanda zeromq mqtt celery",
    "frontend framework": "react vue vue.js=vue angular svelte sveltekit solidjs next.js nuxt ember htmx preact",
    "backend framework": (
        "fastapi django flask express nestjs spring spring_boot=spring rails ruby_on_rails=rails laravel gin phoenix "
        "actix axum asp.net"
    ),
    "language": (
        "python java kotlin go golang=go rust typescript javascript ruby php swift scala elixir erlang haskell c# c++ "
        "perl clojure dart zig cobol"
    ),
    "mobile framework": "flutter react_native ionic swiftui",
    "deployment target": (
        "aws azure gcp google_cloud=gcp heroku fly.io vercel netlify hetzner digitalocean render railway "
        "cloudflare on-prem"
    ),
    "orchestration": "kubernetes k8s=kubernetes nomad docker_swarm openshift ecs",
    "container runtime": "docker podman",
    "infrastructure code": "terraform pulumi ansible cloudformation opentofu",
    "ci": "github_actions gitlab_ci jenkins circleci travis buildkite teamcity azure_pipelines",
    "code hosting": "github gitlab bitbucket gitea",
    "auth method": (
        "jwt jwts=jwt oauth oauth2=oauth oidc saml session_cookies passkeys api_keys basic_auth "
        "magic_links passwordless"
    ),
    "identity provider": "keycloak auth0 okta cognito clerk",
    "search engine": "elasticsearch opensearch meilisearch typesense solr algolia",
    "orm": "sqlalchemy prisma hibernate typeorm drizzle sequelize",
    "test framework": "pytest jest vitest junit playwright cypress selenium mocha unittest",
    "css framework": "tailwind bootstrap bulma sass",
    "state management": "redux zustand mobx pinia vuex",
    "api style": "graphql rest grpc soap trpc",
    "package manager": "npm yarn pnpm poetry pip pipenv conda",
    "build tool": "webpack vite bazel gradle maven rollup esbuild",
    "monitoring": "grafana prometheus datadog new_relic sentry",
    "payment provider": "stripe adyen paypal mollie braintree",
    "license": "mit apache_2.0 apache gpl agpl bsd mpl",
    "branching model": "trunk-based_development trunk-based gitflow git_flow=gitflow github_flow",
    "architecture": "microservices monolith modular_monolith event_sourcing serverless",
    "indentation": "tabs spaces two_spaces=spaces four_spaces=spaces",
    "ui theme": "dark_mode light_mode dark_theme=dark_mode light_theme=light_mode",
}
_NOUNS = {
    "database": "database databases db datastore data_store primary_database main_database",
    "vector database": "vector_database vector_store",
    "cache": "cache caching",
    "message queue": "queue queues message_queue job_queue message_broker broker event_bus messaging",
    "frontend framework": "frontend front-end front_end ui web_app web_frontend frontend_framework ui_framework",
    "backend framework": "backend back-end back_end api backend_framework web_framework server",
    "language": "language programming_language",
    "mobile framework": "mobile_app app_framework mobile_framework",
    "deployment target": "hosting host cloud cloud_provider hosting_provider deployment deployments deployment_target",
    "orchestration": "orchestration container_orchestration orchestrator",
    "infrastructure code": "infrastructure_as_code infrastructure",
    "ci": "ci ci_server ci/cd pipelines continuous_integration builds",
    "code hosting": "code_hosting source_hosting",
    "auth method": "authentication auth login auth_method password_login sign-in",
    "identity provider": "identity_provider single_sign-on sso",
    "search engine": "search full_text_search full-text_search search_engine",
    "orm": "orm",
    "test framework": "tests testing test_framework test_runner unit_tests",
    "css framework": "styling styles css css_framework",
    "state management": "state_management state",
    "api style": "public_api api_style",
    "package manager": "package_manager packages dependencies",
    "build tool": "build_tool bundler bundling",
    "monitoring": "monitoring observability dashboards metrics dashboard_tool",
    "payment provider": "payments payment payment_provider billing",
    "license": "license licence",
    "branching model": "branching branching_model",
    "indentation": "indentation",
    "ui theme": "theme ui_theme",
}
_CATEGORY_OF_SLOTS = {
    "database": "database|vector database|search engine|orm",
    "framework": "frontend framework|backend framework|mobile framework|css framework|state management",
    "language": "language",
    "infrastructure": "cache|message queue|monitoring|identity provider",
    "deployment": "deployment target|orchestration|container runtime|infrastructure code|ci",
    "security": "auth method",
    "testing": "test framework",
    "api": "api style",
    "process": "code hosting|branching model|package manager|build tool|indentation|license",
    "architecture": "architecture",
    "ui": "ui theme",
    "budget": "budget|payment provider",
    "schedule": "deadline|launch date|release date",
    "team": "team size",
}
_WORDS_OF_CATEGORIES = {
    "security": (
        "password passwords encrypted encryption secret secrets token tokens auth authentication login gdpr privacy "
        "personal security permission permissions virus viruses vulnerability findings https tls admins legal "
        "compliance"
    ),
    "schedule": (
        "deadline launch release sprint milestone schedule quarter january february march april june july august "
        "september october november december spring summer autumn winter week month year friday monday beta prototype "
        "demo"
    ),
    "budget": "budget cost costs euro euros dollar dollars price pricing revenue profit break-even money paying",
    "performance": (
        "latency ms milliseconds seconds throughput performance fast slow uptime memory mb gb bundle requests"
    ),
    "testing": "test tests testing coverage qa e2e regression",
    "deployment": (
        "deploy deploys deployment hosting host server servers cluster production staging rollback environment port "
        "docker build ci pipeline binary machine"
    ),
    "database": "database table tables index migration migrations backup backups rows schema query queries data",
    "api": "api apis endpoint endpoints rest graphql protocol client webhook",
    "ui": "ui layout page button screen theme design css browser browsers accessibility mobile",
    "team": (
        "team people developer developers designer manager lead engineer engineers contact client customer customers "
        "owner stakeholder architect analyst responsible"
    ),
    "process": (
        "review reviews reviewed meeting meetings stand-ups pull commit commits merge docs documentation changelog"
    ),
    "architecture": "service services module modules component components monolith microservices repository system",
}


def _entries(groups: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """From a name as it is written to its slot and its fixed form."""
    entries = {}
    for slot, names in groups.items():
        for entry in names.split():
            name, _, fixed = entry.replace("_", " ").partition("=")
            entries[name] = (slot, fixed or name)
    return entries


TECHNOLOGIES: Mapping[str, tuple[str, str]] = _entries(_SLOTS)
"""From a name, folded, to its slot and its fixed form: `postgres` is (`database`, `postgresql`)."""
SLOTS: Mapping[str, str] = {name: slot for name, (slot, _) in _entries(_NOUNS).items()}
"""From a noun, folded, to the slot that it names."""
CATEGORIES_OF_SLOTS: Mapping[str, str] = {
    slot: category for category, slots in _CATEGORY_OF_SLOTS.items() for slot in slots.split("|")
}
CATEGORIES: Mapping[str, str] = {
    word: category for category, words in reversed(_WORDS_OF_CATEGORIES.items()) for word in words.split()
}
"""From a word, folded, to what it speaks of; of a word in two, the one named first counts."""
AMBIGUOUS = frozenset({"go", "rest", "express", "spring", "render", "swift", "spaces", "tabs", "gin", "phoenix"})
"""Names that are tags only where they were chosen."""
PURPOSES = frozenset(
    slot.replace("_", " ")
    for slot in word_set(
        "database vector_database cache message_queue search_engine monitoring auth_method state_management"
    )
)
"""Slots that a technology of another one can fill: a database serves as a queue, a cache as a database."""
