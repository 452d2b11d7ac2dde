package embed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/embed/graph"
	"sublet/embed/rate"
	"sublet/vnet"
)

// queuesAt names the queues of a rate of a switch's port; 0: that there is none which
// holds a link.
func queuesAt(o vnet.OpenFlowSwitch, link string, r vnet.Rate) string {
	return queuesPrefix + o.Name + "/" + link + "/" + r.String()
}

// queueLoads lists how many queues of each rate the ports of a switch have.
func queueLoads(o vnet.OpenFlowSwitch) (list []SwitchLoad) {
	for _, q := range o.Queues {
		name := queuesAt(o, q.Link, q.Rate)
		i := slices.IndexFunc(list, func(l SwitchLoad) bool { return l.Link == name })
		if i < 0 {
			i = len(list)
			list = append(list, SwitchLoad{Link: name, Switch: o.Name})
		}
		list[i].Has++
	}
	return list
}

// needQueues adds the queues that a link needs at a switch: each direction one of the
// port by which it leaves.
func (e *Embedder) needQueues(needs map[string]int64, o vnet.OpenFlowSwitch, l vnet.VirtualLink, share vnet.PathShare, leaves [2]graph.Arc) {
	path := e.graph.Path(leaves[:])
	for _, dir := range vnet.Directions {
		if b := l.Bandwidth[dir]; !b.BestEffort() {
			needs[rate.Element{Link: queuesAt(o, path[dir], o.QueueRate(path[dir], share.Of(b.Max)))}.String()]++
		}
	}
}

// lacksQueue is a switch with a port whose queues are all too small for a link; "": there
// is none.
func (e *Embedder) lacksQueue(needs map[string]int64) (name, why string) {
	for _, o := range e.whole.OpenFlow {
		for _, link := range slices.Sorted(maps.Keys(o.Ports)) {
			if needs[rate.Element{Link: queuesAt(o, link, 0)}.String()] == 0 {
				continue
			}
			var rates []string
			for _, q := range queueLoads(o) {
				if r, here := strings.CutPrefix(q.Link, queuesPrefix+o.Name+"/"+link+"/"); here {
					rates = append(rates, r)
				}
			}
			if len(rates) == 0 {
				return o.Name, fmt.Sprintf("switch %s has no queues at link %s, which the network's links would need there", o.Name, link)
			}
			return o.Name, fmt.Sprintf("switch %s has queues of %s at link %s, and none for the max of a link of the network: state a smaller one", o.Name, strings.Join(rates, ", "), link)
		}
	}
	return "", ""
}
