package pipeline

import "sublet/openflow/of13"

// Queue is a queue of a port: as it was configured, outside of OpenFlow, and what it
// has carried.
type Queue struct {
	of13.Queue
	Stats of13.QueueStats
}

// queuesOf gives what there is of a queue of a port, or of all of either. Which of the
// two is not there is an error.
func (s *Switch) queuesOf(port, number uint32) (list []Queue, err error) {
	ports, err := s.portsOf(port)
	if err != nil {
		return nil, of13.QueueOpFailedBadPort
	}
	for _, p := range ports {
		if s.Queues == nil {
			break
		}
		for _, q := range s.Queues(p.Number) {
			if number == of13.QueueAll || number == q.Queue.Queue {
				list = append(list, q)
			}
		}
	}
	if len(list) == 0 && number != of13.QueueAll {
		return nil, of13.QueueOpFailedBadQueue
	}
	return list, nil
}

// queueConfig says which queues ports have.
func (s *Switch) queueConfig(m *of13.QueueConfigRequest) (of13.Message, error) {
	list, err := s.queuesOf(m.Port, of13.QueueAll)
	if err != nil {
		return nil, err
	}
	r := &of13.QueueConfigReply{Port: m.Port}
	for _, q := range list {
		r.Queues = append(r.Queues, q.Queue)
	}
	return r, nil
}

func (s *Switch) queueStats(r *of13.MultipartReply, port, number uint32) error {
	list, err := s.queuesOf(port, number)
	for _, q := range list {
		r.Queues = append(r.Queues, q.Stats)
	}
	return err
}
