-- The books are written once. Nobody changes them, this program included.
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries is append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries is append-only'); END;
CREATE TRIGGER journals_no_update BEFORE UPDATE ON journals
BEGIN SELECT RAISE(ABORT, 'journals is append-only'); END;
CREATE TRIGGER journals_no_delete BEFORE DELETE ON journals
BEGIN SELECT RAISE(ABORT, 'journals is append-only'); END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
