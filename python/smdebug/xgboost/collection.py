"""Collections of a run of XGBoost, under the names that old scripts import."""

from smdebug.collection import Collection, CollectionManager

__all__ = ["Collection", "CollectionManager"]
