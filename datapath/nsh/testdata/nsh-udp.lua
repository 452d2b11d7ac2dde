-- NSH straight behind UDP, which analysers know behind Ethernet, GRE and VXLAN-GPE.
DissectorTable.get("udp.port"):add(61440, DissectorTable.get("ethertype"):get_dissector(0x894f))
