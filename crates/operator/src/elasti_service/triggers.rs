//! Scale-down triggers: asked on a timer, remembered until asked again.
