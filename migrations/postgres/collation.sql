-- Ids are compared and paged in the order of their bytes, whatever language the database was
-- set up for. SQLite does so by itself.
DO $$
DECLARE
    wrong RECORD;
BEGIN
    FOR wrong IN
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'
          AND collation_name IS DISTINCT FROM 'C' AND table_name NOT LIKE '\_sqlx%'
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE TEXT COLLATE "C"',
                       wrong.table_name, wrong.column_name);
    END LOOP;
END $$;
