-- Texts are compared by their bytes already.
SELECT 1;
