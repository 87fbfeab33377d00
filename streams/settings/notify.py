"""Settings of alert sinks. Which alert goes to which is policy (`[notify]`)."""

from typing import Literal

from pydantic import BaseModel, Field, SecretStr

_URL = r"^https?://\S+$"


class NotifySettings(BaseModel):
    """Alert sinks beside the topic; each is off unless its address, key or token is given."""

    webhook_url: str | None = Field(None, description="Webhook that receives each alert change (Standard Webhooks).")
    webhook_secret: SecretStr | None = Field(None, description="Signing secret, `whsec_…`.")
    alertmanager_url: str | None = Field(None, description="Base address of an Alertmanager.")
    slack_token: SecretStr | None = Field(None, description="Bot token `xoxb-…` with the scope chat:write.")
    slack_channel: str = Field("", description="Id or name of a channel of which the bot is a member.")
    slack_url: str = Field("https://slack.com/api", pattern=_URL, description="Base address of Slack's Web API.")
    pagerduty_key: SecretStr | None = Field(None, description="Integration key of a service's Events API v2.")
    pagerduty_url: str = Field(
        "https://events.pagerduty.com",
        pattern=_URL,
        description="Events API; https://events.eu.pagerduty.com in the EU.",
    )
    oncall_url: SecretStr | None = Field(
        None, description="Address of a formatted-webhook integration of Grafana OnCall or IRM; it contains a secret."
    )
    teams_url: SecretStr | None = Field(
        None, description="Address of a Teams workflow that posts the content of a webhook; it contains a secret."
    )
    mail_host: str | None = Field(None, description="SMTP server for e-mail.")
    mail_port: int = Field(587, ge=1, le=65_535, description="SMTP port: 587 with starttls, 465 with tls.")
    mail_security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="Encryption of the connection; `none` only for a relay on this machine."
    )
    mail_ca_file: str | None = Field(None, description="Trusted certificates. Default: those of the system.")
    mail_user: str = Field("", description="User name for the SMTP server; empty: no login.")
    mail_password: SecretStr | None = Field(None, description="Password for the SMTP server.")
    mail_from: str = Field("turntide@localhost", pattern=r"^\S+@\S+$", description="Sender of e-mail.")
    mail_to: list[str] = Field([], description="Recipients of e-mail, as JSON in the environment.")

    @property
    def addresses(self) -> dict[str, str]:
        """Where each sink that is set sends to, by the setting that says so."""
        urls = {
            "webhook_url": self.webhook_url,
            "alertmanager_url": self.alertmanager_url,
            "slack_url": self.slack_token and self.slack_url,
            "pagerduty_url": self.pagerduty_key and self.pagerduty_url,
            "oncall_url": self.oncall_url and self.oncall_url.get_secret_value(),
            "teams_url": self.teams_url and self.teams_url.get_secret_value(),
            "mail_host": self.mail_host and f"smtp://{self.mail_host}:{self.mail_port}",
        }
        return {setting: url for setting, url in urls.items() if url}

    @property
    def has_sinks(self) -> bool:
        """Whether there is anything for the role `notify` to do."""
        return bool(self.addresses)
