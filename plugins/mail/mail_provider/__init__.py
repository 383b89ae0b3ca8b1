"""Mailboxes as resources: mbox files and Maildirs of a granted directory."""
