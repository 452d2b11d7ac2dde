package replay

import (
	"encoding/json"
	"math"
	"strconv"

	"sublet/vnet"
)

// unit is how many of the embedder's units one of the instance's amounts has.
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
func (r Request) network(id int, opt Options) vnet.Request {
	paths := 0
	if opt.Split {
		paths = vnet.MaxPaths
	}
	made := vnet.Request{Network: vnet.VNetID(strconv.Itoa(id)), Colocate: vnet.ColocateForbidden, Objective: opt.Objective}
	for i, c := range r.CPU {
		made.Nodes = append(made.Nodes, vnet.VirtualNode{Name: strconv.Itoa(i), CPU: vnet.CPU(demand(c))})
	}
	for i, l := range r.Links {
		static := vnet.Static(vnet.Rate(demand(l.Amount)))
		made.Links = append(made.Links, vnet.VirtualLink{
			Name: strconv.Itoa(i), Ends: [2]string{strconv.Itoa(l.Ends[0]), strconv.Itoa(l.Ends[1])},
			Bandwidth: [2]vnet.Bandwidth{static, static}, Paths: paths,
		})
	}
	return made
}

// Mapping is where an accepted request is, by the instance's indexes: a node
// for each of the request's nodes, and how each virtual link is carried.
type Mapping struct {
	ID    int       `json:"id"`
	Nodes []int     `json:"nodes"`
	Links []Carrier `json:"links"`
}

// Carrier is how a virtual link is carried: links in path order from its first
// end or, where links may be split, a list of such paths with their shares.
type Carrier struct {
	split bool
	paths []Path
}

// Path is one of a split link's paths.
type Path struct {
	Path  []int   `json:"path"`
	Share float64 `json:"share"` // of the demand; those of a link add up to 1
}

// MarshalJSON gives [5,2], or [{"path":[5,2],"share":1}] where links may be split.
func (l Carrier) MarshalJSON() ([]byte, error) {
	if l.split {
		return json.Marshal(l.paths)
	}
	return json.Marshal(l.paths[0].Path)
}

// hops is the mean length of the paths.
func (l Carrier) hops() float64 {
	sum := 0.0
	for _, p := range l.paths {
		sum += p.Share * float64(len(p.Path))
	}
	return sum
}

// mappingOf undoes the names.
func mappingOf(id int, r Request, m vnet.Mapping, split bool) (Mapping, error) {
	made := Mapping{ID: id, Nodes: make([]int, len(r.CPU)), Links: make([]Carrier, len(r.Links))}
	var err error
	for i := range made.Nodes {
		if made.Nodes[i], err = strconv.Atoi(string(m.Nodes[strconv.Itoa(i)])); err != nil {
			return made, err
		}
	}
	for i := range made.Links {
		made.Links[i].split = split
		for _, share := range m.Paths(strconv.Itoa(i)) {
			path, err := indexes(share.Path)
			if err != nil {
				return made, err
			}
			made.Links[i].paths = append(made.Links[i].paths, Path{path, float64(share.Units) / vnet.ShareUnits})
		}
	}
	return made, nil
}

// indexes reads the links of a path.
func indexes(path vnet.Path) ([]int, error) {
	list := make([]int, len(path))
	for i, name := range path {
		link, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		list[i] = link
	}
	return list, nil
}
