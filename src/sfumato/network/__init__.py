"""The living network: sensors that publish over MQTT, and a collector that recovers what moves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
