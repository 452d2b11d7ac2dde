"""The learning switch of learning.py, which prints the number of each connection that a
switch makes; with arguments (key, certificate, authority) it listens over TLS."""
import sys

from learning import Learning
from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import controller, ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, set_ev_cls


class Auxiliary(Learning):
    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, ev):
        print("connection", ev.msg.auxiliary_id, flush=True)
        if ev.msg.auxiliary_id == 0:
            super().connected(ev)


if __name__ == "__main__":
    for name, file in zip(("ctl_privkey", "ctl_cert", "ca_certs"), sys.argv[1:]):
        cfg.CONF.set_override(name, file)
    app_manager.AppManager.run_apps([__name__])
