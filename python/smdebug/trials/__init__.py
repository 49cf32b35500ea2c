"""Reading recorded runs."""

from smdebug.open_trial import LocalTrial, S3Trial, create_trial
from smdebug.trial import Trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
