"""Invented secrets, made anew at each run and never stored, and look-alikes that are none."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

LETTERS = string.ascii_letters
ALPHANUMERIC = LETTERS + string.digits
HEX = "0123456789abcdef"
URL_SAFE = ALPHANUMERIC + "-_"
BASE32 = string.ascii_uppercase + "234567"


@dataclass(frozen=True, kw_only=True)
class Sample:
    kind: str
    text: str
    secret: str
    """The part that must not be seen."""


class Inventor:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def some(self, alphabet: str, length: int) -> str:
        """Random characters, among them a digit and both cases where the alphabet has them, as real keys have."""
        while True:
            text = "".join(self._random.choices(alphabet, k=length))
            if all(any(c in group for c in text) for group in (string.digits, LETTERS) if set(group) & set(alphabet)):
                return text

    def base64_of(self, length_bytes: int) -> str:
        return base64.b64encode(self._random.randbytes(length_bytes)).decode()

    def digits(self, length: int) -> str:
        return str(self._random.randint(1, 9)) + self.some(string.digits, length - 1) if length > 1 else "7"


def _jwt(make: Inventor) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")

    claims = {"sub": make.digits(10), "name": make.some(LETTERS, 8), "iat": 1_700_000_000}
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{make.some(URL_SAFE, 43)}"


def _key_block(make: Inventor, name: str) -> str:
    lines = [make.base64_of(48) for _ in range(6)]
    return f"-----BEGIN {name}-----\n" + "\n".join(lines) + f"\n-----END {name}-----"


def _plain(kind: str, secret: Callable[[Inventor], str], text: str) -> tuple[str, Callable[[Inventor], str], str]:
    return kind, secret, text


SECRETS: list[tuple[str, Callable[[Inventor], str], str]] = [
    _plain("aws access key id", lambda m: "AKIA" + m.some(BASE32, 16), "use {} for the bucket"),
    _plain("aws temporary key id", lambda m: "ASIA" + m.some(BASE32, 16), "export AWS_ACCESS_KEY_ID={}"),
    _plain("aws secret key", lambda m: m.some(ALPHANUMERIC + "/+", 40), "aws_secret_access_key = {}"),
    _plain("aws secret key in json", lambda m: m.some(ALPHANUMERIC + "/+", 40), '{{"SecretAccessKey": "{}"}}'),
    _plain("github token", lambda m: "ghp_" + m.some(ALPHANUMERIC, 36), "git clone https://{}@github.com/acme/app"),
    _plain("github fine-grained", lambda m: f"github_pat_{m.some(ALPHANUMERIC, 22)}_{m.some(ALPHANUMERIC, 59)}", "GH_TOKEN={}"),
    _plain("github app token", lambda m: "ghs_" + m.some(ALPHANUMERIC, 36), "token: {}"),
    _plain("gitlab token", lambda m: "glpat-" + m.some(URL_SAFE, 20), "PRIVATE-TOKEN: {}"),
    _plain("slack bot token", lambda m: f"xoxb-{m.digits(12)}-{m.digits(13)}-{m.some(ALPHANUMERIC, 24)}", "SLACK={}"),
    _plain(
        "slack webhook",
        lambda m: f"T{m.some(BASE32, 8)}/B{m.some(BASE32, 10)}/{m.some(ALPHANUMERIC, 24)}",
        "curl https://hooks.slack.com/services/{}",
    ),
    _plain("openai project key", lambda m: f"sk-proj-{m.some(URL_SAFE, 74)}T3BlbkFJ{m.some(URL_SAFE, 74)}", "OPENAI_API_KEY={}"),
    _plain("openai short key", lambda m: f"sk-{m.some(ALPHANUMERIC, 48)}", "the key is {}, keep it"),
    _plain("anthropic key", lambda m: f"sk-ant-api03-{m.some(URL_SAFE, 93)}AA", "ANTHROPIC_API_KEY={}"),
    _plain("deepseek key", lambda m: f"sk-{m.some(HEX, 32)}", "deepseek: {}"),
    _plain("openrouter key", lambda m: f"sk-or-v1-{m.some(HEX, 64)}", "key {}"),
    _plain("google api key", lambda m: "AIza" + m.some(URL_SAFE, 35), "https://maps.example/js?key={}"),
    _plain("google oauth secret", lambda m: "GOCSPX-" + m.some(URL_SAFE, 28), '"client_secret":"{}"'),
    _plain("hugging face token", lambda m: "hf_" + m.some(LETTERS, 34), "login(token='{}')"),
    _plain("groq key", lambda m: "gsk_" + m.some(ALPHANUMERIC, 52), "groq {}"),
    _plain("stripe live key", lambda m: "sk_live_" + m.some(ALPHANUMERIC, 24), "stripe.api_key = '{}'"),
    _plain("stripe restricted key", lambda m: "rk_live_" + m.some(ALPHANUMERIC, 24), "with {} it works"),
    _plain("stripe webhook secret", lambda m: "whsec_" + m.some(ALPHANUMERIC, 32), "endpoint secret {}"),
    _plain("sendgrid key", lambda m: f"SG.{m.some(URL_SAFE, 22)}.{m.some(URL_SAFE, 43)}", "SENDGRID {}"),
    _plain("twilio key", lambda m: "SK" + m.some(HEX, 32), "twilio api key {}"),
    _plain("npm token", lambda m: "npm_" + m.some(ALPHANUMERIC, 36), "//registry.npmjs.org/:_authToken={}"),
    _plain("pypi token", lambda m: "pypi-AgEIcHlwaS5vcmc" + m.some(URL_SAFE, 70), "password = {}"),
    _plain("docker token", lambda m: "dckr_pat_" + m.some(URL_SAFE, 27), "docker login -p {}"),
    _plain("digitalocean token", lambda m: "dop_v1_" + m.some(HEX, 64), "doctl auth init -t {}"),
    _plain("vault token", lambda m: "hvs." + m.some(URL_SAFE, 90), "VAULT_TOKEN={}"),
    _plain("databricks token", lambda m: "dapi" + m.some(HEX, 32), "databricks {}"),
    _plain("telegram bot token", lambda m: f"{m.digits(10)}:AA{m.some(URL_SAFE, 33)}", "https://api.telegram.org/bot{}/getMe"),
    _plain("linear key", lambda m: "lin_api_" + m.some(ALPHANUMERIC, 40), "linear: {}"),
    _plain("notion token", lambda m: "ntn_" + m.some(ALPHANUMERIC, 46), "notion {}"),
    _plain("shopify token", lambda m: "shpat_" + m.some(HEX, 32), "shop {}"),
    _plain("figma token", lambda m: "figd_" + m.some(URL_SAFE, 40), "X-Figma-Token: {}"),
    _plain("new relic key", lambda m: "NRAK-" + m.some(string.ascii_uppercase + string.digits, 27), "newrelic {}"),
    _plain("age secret key", lambda m: "AGE-SECRET-KEY-1" + m.some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "{}"),
    _plain("json web token", _jwt, "cookie: session={}"),
    _plain("bearer header", lambda m: m.some(ALPHANUMERIC, 40), "Authorization: Bearer {}"),
    _plain("bearer in code", lambda m: m.some(URL_SAFE, 43), "headers = {{'Authorization': 'Bearer {}'}}"),
    _plain("basic header", lambda m: m.base64_of(24), "Authorization: Basic {}"),
    _plain("password in a database url", lambda m: m.some(ALPHANUMERIC, 14), "postgres://app:{}@db.internal:5432/app"),
    _plain("password in a redis url", lambda m: m.some(ALPHANUMERIC, 20), "REDIS_URL=redis://:{}@10.0.0.7:6379/0"),
    _plain("password in another url", lambda m: m.some(ALPHANUMERIC + "!$", 12), "nats://svc:{}@nats.example:4222"),
    _plain("password assigned", lambda m: m.some(ALPHANUMERIC + "!#%", 16), 'DB_PASSWORD="{}"'),
    _plain("password in yaml", lambda m: m.some(ALPHANUMERIC, 18), "  password: {}\n  host: db"),
    _plain("api key in json", lambda m: m.some(HEX, 32), '{{"api_key": "{}"}}'),
    _plain("secret in a call", lambda m: m.base64_of(30), "configure(client_secret='{}')"),
    _plain("token in an env file", lambda m: m.some(ALPHANUMERIC, 32), "INTERNAL_AUTH_TOKEN={}\n"),
    _plain("token on a command line", lambda m: m.some(ALPHANUMERIC, 36), "deploy --api-token {} --region eu"),
    _plain("storage account key", lambda m: m.base64_of(64), "AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net"),
    _plain("private key", lambda m: _key_block(m, "PRIVATE KEY"), "here:\n{}\n"),
    _plain("rsa private key", lambda m: _key_block(m, "RSA PRIVATE KEY"), "cat id_rsa\n{}"),
    _plain("openssh private key", lambda m: _key_block(m, "OPENSSH PRIVATE KEY"), "{}"),
    _plain("pgp private key", lambda m: _key_block(m, "PGP PRIVATE KEY BLOCK"), "{}\nend"),
    _plain(
        "private key in json", lambda m: _key_block(m, "PRIVATE KEY").replace("\n", "\\n"), '{{"private_key": "{}\\n", "id": 1}}'
    ),
    _plain(
        "private key cut off",
        lambda m: _key_block(m, "EC PRIVATE KEY").rpartition("\n-----END")[0],
        "head -7 key.pem\n{}\n\n$ ls",
    ),
]


def invented_secrets(seed: int) -> list[Sample]:
    samples: list[Sample] = []
    for number, (kind, invent, text) in enumerate(SECRETS):
        secret = invent(Inventor(seed * 1000 + number))
        samples.append(Sample(kind=kind, text=text.format(secret), secret=secret))
    return samples


def look_alikes(seed: int) -> list[str]:
    """Text that names keys, or looks like one, and must stay as it is."""
    make = Inventor(seed)
    uuid = f"{make.some(HEX, 8)}-{make.some(HEX, 4)}-4{make.some(HEX, 3)}-a{make.some(HEX, 3)}-{make.some(HEX, 12)}"
    return [
        'api_key = os.environ["OPENAI_API_KEY"]',
        "const token = process.env.GITHUB_TOKEN;",
        "password: string;",
        "password: str = Field(min_length=12)",
        'password = "changeme"',
        "PASSWORD=changeme123",
        'api_key: "your-api-key-here"',
        "OPENAI_API_KEY=sk-...",
        "ANTHROPIC_API_KEY=<your key>",
        'secret = "xxxxxxxxxxxxxxxxxxxxxxxx"',
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "token = ${GITHUB_TOKEN}",
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        f"commit {make.some(HEX, 40)}",
        f"Merge {make.some(HEX, 7)} into {make.some(HEX, 12)}",
        f"sha256:{make.some(HEX, 64)}",
        f"{make.some(HEX, 64)}  dist/app-1.0.tar.gz",
        f"sha512-{make.base64_of(64)}",
        f'"integrity": "sha512-{make.base64_of(64)}"',
        f"request id {uuid}",
        f'{{"session_id": "{uuid}"}}',
        f"token_count: {make.digits(8)}",
        "max_tokens=128000, tokens_used=93211",
        "def reset_password(user: User, new_password: str) -> None:",
        "if (password !== confirmPassword) throw new PasswordMismatchError();",
        "from secrets import token_urlsafe, compare_digest",
        "The secret: keep functions short and names long.",
        "password must contain at least eight characters",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $ACCESS_TOKEN",
        'headers["Authorization"] = f"Bearer {token}"',
        "postgres://user:password@localhost:5432/db",
        "postgres://${DB_USER}:${DB_PASSWORD}@db/app",
        "https://example.com:8080/path@version",
        "ssh://git@github.com:22/acme/app.git",
        "-----BEGIN PUBLIC KEY-----\n" + make.base64_of(48) + "\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + make.base64_of(48) + "\n-----END CERTIFICATE-----",
        "starts with -----BEGIN RSA PRIVATE KEY----- and ends with -----END RSA PRIVATE KEY-----",
        "data:image/png;base64," + make.base64_of(90),
        "class='sk-fading-circle sk-circle-container-animation'",
        "pip install scikit-learn==1.4.2  # sk-learn-contrib-hdbscan-cluster",
        "const tokenizer = getTokenizerForModelName('cl100k_base_extended')",
        "secretName: my-application-database-credentials",
        "SECRET_KEY_BASE_PATH=/etc/app/secrets/key_base.txt",
        "access_token_url: https://auth.example.com/oauth2/v1/token",
        "const API_KEY_HEADER = 'X-Api-Key-Identifier';",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{make.some(ALPHANUMERIC + '+/', 43)} me@host",
        "key = hashlib.sha256(password.encode()).hexdigest()",
        "private_key = rsa.generate_private_key(public_exponent=65537, key_size=4096)",
        "sort_key=created_at_descending_v2, partition_key=customer_id_hash_v3",
        "password_reset_token_expiry = timedelta(hours=24)",
    ]
