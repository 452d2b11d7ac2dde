package vnet

import (
	"slices"
	"strings"
	"testing"
)

// What FRR offers that has no place in a request is refused with its line, also
// abbreviated, negated, or inside of what routes.
func TestStatementsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"log file /tmp/x":                               `line 1: "log" reads or writes files`,
		"router ospf\n  no log file /x":                 `line 2: "log" reads or writes files`,
		"!\n\nlo fi /tmp/x":                             `line 3: "lo" may be short for log`,
		"LOG stdout":                                    `"LOG" reads or writes files`,
		"\tpassword x":                                  `"password" opens a way to log in`,
		"enable password x":                             `"enable" opens a way to log in`,
		"line vty\n exec-timeout 0 0":                   `line 1: "line" opens a way to log in`,
		"line vty\nexit\n no login":                     `"line" opens a way to log in`,
		"no line vty":                                   `"line" opens a way to log in`,
		"service advanced-vty":                          `"service" opens a way to log in`,
		"banner motd file /etc/shadow":                  `"banner" reads or writes files`,
		"router bgp 1\n dump bgp all /x":                `"dump" reads or writes files`,
		"agentx":                                        `"agentx" loads a module`,
		"fpm address 127.0.0.1":                         `"fpm" loads a module`,
		"rpki":                                          `"rpki" loads a module`,
		"yang module-translator load /x":                `"yang" loads a module`,
		"do show running-config":                        `"do" is a command`,
		"start-shell":                                   `"start-shell" is a command`,
		"debug bgp updates":                             `"debug" fills logs`,
		"vrf a\n netns /run/netns/x":                    `"vrf" makes tables`,
		"router eigrp 1":                                `routers do not run a daemon for "eigrp"`,
		"hostname a\x00b":                               "characters that cannot be printed",
		"hostname a\r\n":                                "characters that cannot be printed",
		"hostname a\xff":                                "characters that cannot be printed",
		"route-map " + strings.Repeat("a", 1100):        "line 1 is longer than 1024 bytes",
		strings.Repeat("ip route 10.0.0.0/8 x\n", 1600): "bytes are more than 32768",
	} {
		if err := checkFRR("frr", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// What FRR itself writes as its configuration is taken, and names its daemons.
func TestConfigurationsAsFRRWritesThem(t *testing.T) {
	const text = `Building configuration...

Current configuration:
!
frr version 8.4.4
frr defaults traditional
hostname r1
service integrated-vtysh-config
!
ip route 10.9.0.0/16 10.0.0.2
!
interface eth0
 ip ospf area 0
 ip ospf bfd
exit
!
router bgp 65001
 neighbor 10.0.0.2 remote-as 65002
 address-family ipv4 unicast
  network 10.1.0.0/16
 exit-address-family
exit
!
router ospf
 passive-interface eth1
 log-adjacency-changes
exit
!
router isis a
 net 49.0001.0000.0000.0001.00
exit
!
ip prefix-list p seq 5 permit any
route-map m permit 10
exit
!
line vty
exit
!
end
`
	if err := checkFRR("frr", text); err != nil {
		t.Error(err)
	}
	if got := FRRDaemons(text); !slices.Equal(got, []string{"bfdd", "bgpd", "isisd", "ospfd", "staticd"}) {
		t.Errorf("daemons %v", got)
	}
}

// What says nothing to a daemon is not told to any, and lines keep their numbers.
func TestHeadsOfConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		"Building configuration...\n\nCurrent configuration:\n!\nip route 1.0.0.0/8 blackhole\nend\n": "!\n\n!\n!\nip route 1.0.0.0/8 blackhole\nend\n",
		"hostname a\nline vty":             "hostname a\n!\n",
		"line vty\n!\n":                    "!\n",
		"line vty\nip route 1.0.0.0/8 x\n": "line vty\nip route 1.0.0.0/8 x\n",
	} {
		if got := FRRText(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}
