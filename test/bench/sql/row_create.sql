-- A row of a bare table that has no index to claim by.
INSERT INTO bare_row (payload) VALUES (:payload);
