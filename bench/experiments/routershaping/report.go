package main

import (
	"fmt"
	"os"

	"sublet/bench/harness"
)

// published is what the article (section IV.B) reports: rates in Mbit/s and loss in percent by
// factor and flow. Its routers were Xen 3.2 domains and Linux 2.6.18.
var published = map[float64][3]struct{ linux, virt, vif, tcp string }{
	0.9: {
		{"90.4, 0.013 %", "90.4, 0.08 %", "90.4, 0.018 %", "86.6"},
		{"135, 0.043 %", "135, 0.1 %", "135, 0.02 %", "130"},
		{"181, 0.037 %", "181, 0.12 %", "181, 0.03 %", "174"},
	},
	1.0: {
		{"98.7, 1.6 %", "98.0, 2.4 %", "97.9, 2.5 %", "-"},
		{"149, 1.3 %", "147, 2.4 %", "147, 2.4 %", "-"},
		{"197, 2.5 %", "196, 3.2 %", "196, 3.2 %", "-"},
	},
	1.2: {{"-", "-", "-", "-"}, {"-", "-", "-", "-"}, {"-", "-", "-", "-"}},
}

func (r results) report() {
	udp := harness.Table{Head: []string{
		"UDP: CF", "flow", "offered", linuxName, namespaceName, subletName,
		"published: Linux, TBF on NIC", "published: virtual, TBF on NIC", "published: virtual, TBF on VIF",
	}}
	tcp := harness.Table{Head: []string{"TCP: CF", "flow", "offered", linuxName, namespaceName, subletName, "published: Linux"}}
	for _, factor := range factors {
		for i, limit := range caps {
			offered, s := factor*limit.Mbps(), published[factor][i]
			row := func(tcp bool, setup string) string { return r[key{setup, tcp, factor, i}].String(!tcp) }
			udp.Add(factor, fmt.Sprint("F", i+1), offered, row(false, linuxName), row(false, namespaceName), row(false, subletName), s.linux, s.virt, s.vif)
			tcp.Add(factor, fmt.Sprint("F", i+1), offered, row(true, linuxName), row(true, namespaceName), row(true, subletName), s.tcp)
		}
	}
	fmt.Printf("Rates in Mbit/s of Ethernet frames, loss of datagrams; caps 100, 150, 200 Mbit/s, all three flows at once; %d round(s) of %d s.\n\n", *rounds, *seconds)
	udp.Print(os.Stdout)
	tcp.Print(os.Stdout)
}

// String gives the rate, and the loss if asked.
func (o *outcome) String(loss bool) string {
	if o == nil {
		return "-"
	}
	if !loss {
		return o.rate.Format("%.1f")
	}
	return o.rate.Format("%.1f") + ", " + o.loss.Format("%.3f") + " %"
}
