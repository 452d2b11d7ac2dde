package vxlink

import (
	"testing"

	"sublet/vnet"
)

func TestLocalLink(t *testing.T) {
	b := newBench(t)
	p, h := b.host("h1")
	n0 := b.node(h, "n0")
	b.node(h, "n1")
	link := local(100 * vnet.Mbit)
	add(t, p, link)
	has(t, p, link)
	b.ping(n0, address(1))
	add(t, p, link)
	has(t, p, link)
	remove(t, p, link)
	has(t, p)
	remove(t, p, link)
	nothingPinned(t, h)
}

func TestTunnel(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	n0 := b.node(hosts[0], "n0")
	b.node(hosts[1], "n1")
	for i, p := range parts {
		add(t, p, uplink(), across(i, 200*vnet.Mbit))
		has(t, p, uplink(), across(i, 200*vnet.Mbit))
		b.carry(hosts[i])
	}
	b.ping(n0, address(1))
	for i, p := range parts {
		remove(t, p, across(i, 200*vnet.Mbit))
		has(t, p, uplink())
		remove(t, p, uplink())
		has(t, p)
		nothingPinned(t, hosts[i])
	}
}
