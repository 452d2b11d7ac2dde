package replay

import "sublet/vnet"

func Network(in *Instance, id int) vnet.Request { return in.Requests[id].network(id, Options{}) }
