"""Whether this is a managed training job, for tools written for the original."""

from smdebug._core import in_sagemaker as is_sagemaker_job

__all__ = ["is_sagemaker_job"]
