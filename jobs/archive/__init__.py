"""Commands over the archive: its health, SQL, dictionary, publication, parity with the streams."""
