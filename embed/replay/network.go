package replay

import (
	"math"
	"strconv"

	"sublet/vnet"
)

// unit is how many of the engine's units one of the instance's amounts has.
// Whole numbers, which the benchmark uses, stay exact; of others a demand is
// rounded up and a capacity down, so that nothing is over-booked.
const unit = 1_000_000

func capacity(amount float64) int64 { return int64(math.Floor(amount * unit)) }

func demand(amount float64) int64 { return int64(math.Ceil(amount * unit)) }

// Substrate is the instance's substrate in the words of the program: nodes
// and links are named by their index.
func (in *Instance) Substrate() vnet.Substrate {
	var sub vnet.Substrate
	for i, c := range in.CPU {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(strconv.Itoa(i)), CPU: vnet.CPU(capacity(c))})
	}
	for i, l := range in.Links {
		sub.Links = append(sub.Links, vnet.SubstrateLink{
			Name: strconv.Itoa(i), Ends: [2]string{strconv.Itoa(l.Ends[0]), strconv.Itoa(l.Ends[1])},
			Capacity: vnet.Rate(capacity(l.Amount)),
		})
	}
	return sub
}

// network is a request in the words of the program.
func (r Request) network(id int, objective vnet.Objective) vnet.Request {
	made := vnet.Request{Network: vnet.VNetID(strconv.Itoa(id)), Colocate: vnet.ColocateForbidden, Objective: objective}
	for i, c := range r.CPU {
		made.Nodes = append(made.Nodes, vnet.VirtualNode{Name: strconv.Itoa(i), CPU: vnet.CPU(demand(c))})
	}
	for i, l := range r.Links {
		static := vnet.Static(vnet.Rate(demand(l.Amount)))
		made.Links = append(made.Links, vnet.VirtualLink{
			Name: strconv.Itoa(i), Ends: [2]string{strconv.Itoa(l.Ends[0]), strconv.Itoa(l.Ends[1])},
			Bandwidth: [2]vnet.Bandwidth{static, static},
		})
	}
	return made
}

// Mapping is where an accepted request is, by the instance's indexes: a node
// for each of the request's nodes, and links in path order from each virtual
// link's first end.
type Mapping struct {
	ID    int     `json:"id"`
	Nodes []int   `json:"nodes"`
	Links [][]int `json:"links"`
}

// mappingOf undoes the names.
func mappingOf(id int, r Request, m vnet.Mapping) (Mapping, error) {
	made := Mapping{ID: id, Nodes: make([]int, len(r.CPU)), Links: make([][]int, len(r.Links))}
	var err error
	for i := range made.Nodes {
		if made.Nodes[i], err = strconv.Atoi(string(m.Nodes[strconv.Itoa(i)])); err != nil {
			return made, err
		}
	}
	for i := range made.Links {
		made.Links[i] = []int{}
		for _, name := range m.Links[strconv.Itoa(i)] {
			link, err := strconv.Atoi(name)
			if err != nil {
				return made, err
			}
			made.Links[i] = append(made.Links[i], link)
		}
	}
	return made, nil
}
