"""Files that hold other files: archives, mails, mailboxes. Each module has `parts`, and `members` beside it."""
