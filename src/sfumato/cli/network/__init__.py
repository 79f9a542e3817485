"""`sfumato sensor`, `sfumato collect`, `sfumato unseal`: sensors over MQTT, their collector, the key holder."""
