"""What a client sends: a transformation of its delta before the mean, with its own state and draws."""

from fedgm.upload.message import Sent, UploadRule

__all__ = ["Sent", "UploadRule"]
