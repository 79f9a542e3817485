"""`sfumato sensor`, `sfumato unseal`: sensors over MQTT, and the noise of their packets taken off."""
