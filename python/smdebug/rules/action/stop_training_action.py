"""Stops a training job of SageMaker."""

from __future__ import annotations

from typing import Any, ClassVar

from smdebug.logger import get_logger
from smdebug.rules.action.aws import aws_client
from smdebug.rules.action.base import Action, ActionFailed
from smdebug.rules.hit import Hit

_MOST_PAGES = 50
_MOST_ERRORS = 5


class StopTrainingAction(Action):
    """Looks for the job when it is made; acts only if exactly one running job has the prefix."""

    default_max_fires: ClassVar[int] = 1

    def __init__(self, rule_name: str, training_job_prefix: str, **options: Any) -> None:
        super().__init__(**{"any_host": True, **options})
        self.rule_name = rule_name
        self._training_job_prefix = training_job_prefix
        self._sagemaker = aws_client("sagemaker", rule_name)
        self._found_jobs = [] if self._sagemaker is None else self._running_jobs()

    def _running_jobs(self) -> list[str]:
        """Names of the running jobs with the prefix, newest first."""
        found: list[str] = []
        asked: dict[str, Any] = {
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            "StatusEquals": "InProgress",
            "NameContains": self._training_job_prefix,
        }
        errors = pages = 0
        while pages < _MOST_PAGES:
            try:
                page = self._sagemaker.list_training_jobs(**asked)
            except Exception as error:  # of the service or of the network
                errors += 1
                get_logger().warning(
                    f"The running training jobs could not be listed for rule {self.rule_name}: {error}"
                )
                if errors >= _MOST_ERRORS:
                    return []  # a part of the list may hide a second match
                continue
            pages += 1
            names = [job["TrainingJobName"] for job in page["TrainingJobSummaries"]]
            found += [name for name in names if name.startswith(self._training_job_prefix)]
            if not page.get("NextToken"):
                break
            asked["NextToken"] = page["NextToken"]
        return found

    def intent(self, hit: Hit) -> str:
        return f"stop the training job whose name begins with {self._training_job_prefix!r}"

    def perform(self, hit: Hit) -> str:
        if self._sagemaker is None:
            raise ActionFailed("SageMaker is not available.")
        if len(self._found_jobs) != 1:
            found = ", ".join(self._found_jobs) or "none"
            raise ActionFailed(
                f"Exactly one running training job must begin with {self._training_job_prefix!r}, "
                f"but these were found: {found}."
            )
        self._sagemaker.stop_training_job(TrainingJobName=self._found_jobs[0])
        return f"The training job {self._found_jobs[0]} was told to stop."
