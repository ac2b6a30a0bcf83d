"""Which embedder an engine starts with: a model's folder, or an endpoint of the user's own."""

from kb.core.errors import InvalidRequest
from kb.core.settings import Settings, default_model_dir
from kb.embedding.embedder import StartingEmbedder
from kb.embedding.endpoint import EndpointEmbedder
from kb.embedding.endpoint_client import Endpoint
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.embedding.tokenizer import Tokenizer


def open_embedder(settings: Settings, recorded: tuple[str, str] | None, priority: Priority) -> StartingEmbedder:
    """The embedder for an index made with the model of this name and fingerprint; None for one still to be made."""
    if not settings.embed_url:
        return WarmingEmbedder(settings.model_folder(recorded and recorded[0]), priority)
    if settings.has_own_model:
        raise InvalidRequest("KB_EMBED_URL and KB_MODEL_DIR both say where vectors come from. Unset one of them.")
    endpoint = Endpoint(settings.embed_url, settings.embed_model, settings.embed_api_key)
    return EndpointEmbedder(endpoint, Tokenizer(default_model_dir() / "tokenizer.json"), recorded)
