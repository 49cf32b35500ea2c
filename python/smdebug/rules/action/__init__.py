"""What happens when the condition of a rule is met."""

from smdebug.rules.action.action import Actions
from smdebug.rules.action.base import Action, ActionFailed
from smdebug.rules.action.checkpoint import Checkpoint
from smdebug.rules.action.command import Command
from smdebug.rules.action.email import Email
from smdebug.rules.action.file import File
from smdebug.rules.action.log import Log
from smdebug.rules.action.save_now import SaveNow
from smdebug.rules.action.sms import SMS
from smdebug.rules.action.stop_stalled import StopStalled
from smdebug.rules.action.stop_training import StopTraining
from smdebug.rules.action.webhook import Webhook

__all__ = [
    "SMS",
    "Action",
    "ActionFailed",
    "Actions",
    "Checkpoint",
    "Command",
    "Email",
    "File",
    "Log",
    "SaveNow",
    "StopStalled",
    "StopTraining",
    "Webhook",
]
