package channel

import (
	"slices"

	"sublet/openflow/of13"
)

// maxParts bounds the tables in a request that comes in several parts.
const maxParts = 254

// parts is a request for features of tables that goes on in another message.
type parts struct {
	xid  uint32
	list []of13.TableFeatures
}

// gather keeps the parts of a request, of which only those for features of tables
// may have several, and completes its last one; whole is false before.
func (c *Conn) gather(xid uint32, m *of13.MultipartRequest) (whole bool, err error) {
	more := m.Flags&of13.MultipartMore != 0
	switch {
	case m.Kind != of13.MultipartTableFeatures:
		if more {
			return false, of13.BadRequestMultipartOverflow
		}
		return true, nil
	case len(m.TableFeatures) > 0 && c.controller().role == of13.RoleSlave: // with tables it is a change (6.3.4)
		c.parts = parts{}
		return false, of13.BadRequestIsSlave
	case xid != c.parts.xid:
		c.parts = parts{xid: xid}
	case len(c.parts.list)+len(m.TableFeatures) > maxParts:
		c.parts = parts{}
		return false, of13.BadRequestMultipartOverflow
	}
	for _, f := range m.TableFeatures {
		f.Properties = slices.Clone(f.Properties)
		for i := range f.Properties {
			f.Properties[i].List = slices.Clone(f.Properties[i].List)
		}
		c.parts.list = append(c.parts.list, f)
	}
	if more {
		return false, nil
	}
	m.TableFeatures, c.parts = c.parts.list, parts{}
	return true, nil
}
