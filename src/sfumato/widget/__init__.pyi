from .map_widget import MapWidget
from .plan_widget import PlanWidget
from .recovery_widget import RecoveryWidget

__all__ = ["MapWidget", "PlanWidget", "RecoveryWidget"]
