-- A row of a bare table, and nobody is told.
INSERT INTO bare (payload) VALUES ('{"command": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
