"""A learning switch as the documentation of os-ken has it (Writing Your OS-Ken Application)."""
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class Learning(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, ev):
        dp = ev.msg.datapath
        p = dp.ofproto_parser
        dp.send_msg(p.OFPFlowMod(datapath=dp, command=dp.ofproto.OFPFC_DELETE, table_id=dp.ofproto.OFPTT_ALL,
                                 out_port=dp.ofproto.OFPP_ANY, out_group=dp.ofproto.OFPG_ANY))
        self.add(dp, 0, p.OFPMatch(), [p.OFPActionOutput(dp.ofproto.OFPP_CONTROLLER, dp.ofproto.OFPCML_NO_BUFFER)])

    def add(self, dp, priority, match, actions):
        p = dp.ofproto_parser
        inst = [p.OFPInstructionActions(dp.ofproto.OFPIT_APPLY_ACTIONS, actions)]
        dp.send_msg(p.OFPFlowMod(datapath=dp, cookie=7, priority=priority, match=match, instructions=inst,
                                 idle_timeout=2 if priority else 0))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        msg = ev.msg
        dp, p, port = msg.datapath, msg.datapath.ofproto_parser, msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        self.ports[eth.src] = port
        out = self.ports.get(eth.dst, dp.ofproto.OFPP_FLOOD)
        actions = [p.OFPActionOutput(out)]
        if out != dp.ofproto.OFPP_FLOOD:
            self.add(dp, 1, p.OFPMatch(in_port=port, eth_dst=eth.dst), actions)
        dp.send_msg(p.OFPPacketOut(datapath=dp, buffer_id=dp.ofproto.OFP_NO_BUFFER, in_port=port, actions=actions, data=msg.data))


if __name__ == "__main__":
    app_manager.AppManager.run_apps([__name__])
