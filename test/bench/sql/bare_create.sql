-- A row of a bare table.
INSERT INTO bare (payload) VALUES (:payload);
