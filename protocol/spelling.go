package protocol

import "fmt"

// The forms that messages of batches have on the wire. Names of fields that
// differ in more than case from one dialect to another need one of their own.

// orderForm is a WorkOrderBatch with both spellings of its chunk.
type orderForm struct {
	*orderFields
	ChunkID  string `json:"chunk_id,omitempty"`
	StrandID string `json:"strand_id,omitempty"`
}

type orderFields WorkOrderBatch

// resultForm is a WorkOrderBatchResponse with all spellings of its ids.
type resultForm struct {
	Envelope
	RequestPlain string                `json:"RequestID,omitempty"`
	RequestID    string                `json:"request_id,omitempty"`
	ChunkPlain   string                `json:"ChunkID,omitempty"`
	ChunkID      string                `json:"chunk_id,omitempty"`
	StrandPlain  string                `json:"StrandID,omitempty"`
	StrandID     string                `json:"strand_id,omitempty"`
	Results      map[string]ItemResult `json:"Results"`
	OrderMAC     string                `json:"ticket,omitempty"`
	Partial      bool                  `json:"partial,omitempty"`
	Outcomes     []Outcome             `json:"outcomes,omitempty"`
	Items        []OrderItem           `json:"items,omitempty"`
}

// replyForm is an ExecuteBatchResponse with both spellings of its chunks.
type replyForm struct {
	*replyFields
	Chunks  map[string]ChunkResults `json:"chunks,omitempty"`
	Strands map[string]ChunkResults `json:"strands,omitempty"`
}

type replyFields ExecuteBatchResponse

// unmarshal reads the fields of a message under any spelling.
func unmarshal(data []byte, m Message) error {
	switch m := m.(type) {
	case *WorkOrderBatch:
		return unmarshalOrder(data, m)
	case *WorkOrderBatchResponse:
		return unmarshalResult(data, m)
	case *ExecuteBatchResponse:
		return unmarshalReply(data, m)
	case *ExecuteBatch:
		if err := unmarshalJSON(data, m); err != nil {
			return err
		}
		m.MaxAttempts = clamp(m.MaxAttempts)
		return nil
	default:
		return unmarshalJSON(data, m)
	}
}

func unmarshalOrder(data []byte, m *WorkOrderBatch) error {
	form := orderForm{orderFields: (*orderFields)(m)}
	if err := unmarshalJSON(data, &form); err != nil {
		return err
	}
	id, err := oneOf("chunk_id", form.ChunkID, form.StrandID)
	m.ChunkID = id
	switch {
	case m.Module != "" || m.OrderMAC != "" || m.Priority != 0 || len(m.Items) > 0:
		m.Dialect = DialectFutura
	case form.StrandID != "" && form.ChunkID == "":
		m.Dialect = DialectStrand
	}
	return err
}

func unmarshalResult(data []byte, m *WorkOrderBatchResponse) error {
	var form resultForm
	if err := unmarshalJSON(data, &form); err != nil {
		return err
	}
	*m = WorkOrderBatchResponse{
		Envelope: form.Envelope, Results: form.Results, OrderMAC: form.OrderMAC, Partial: form.Partial,
		Outcomes: form.Outcomes, Items: form.Items,
	}
	var err error
	if m.RequestID, err = oneOf("request_id", form.RequestID, form.RequestPlain); err != nil {
		return err
	}
	chunk, err := oneOf("chunk_id", form.ChunkID, form.ChunkPlain)
	if err != nil {
		return err
	}
	strand, err := oneOf("strand_id", form.StrandID, form.StrandPlain)
	if err != nil {
		return err
	}
	m.ChunkID, err = oneOf("chunk_id", chunk, strand)
	switch {
	case m.OrderMAC != "" || m.Partial || len(m.Outcomes) > 0 || len(m.Items) > 0:
		m.Dialect = DialectFutura
	case strand != "" && chunk == "":
		m.Dialect = DialectStrand
	}
	return err
}

func unmarshalReply(data []byte, m *ExecuteBatchResponse) error {
	form := replyForm{replyFields: (*replyFields)(m)}
	if err := unmarshalJSON(data, &form); err != nil {
		return err
	}
	if form.Chunks != nil && form.Strands != nil {
		return fmt.Errorf("%w: it has chunks and strands: send one of them", ErrInvalid)
	}
	m.Chunks = form.Chunks
	if form.Strands != nil {
		m.Chunks, m.Dialect = form.Strands, DialectStrand
	}
	return nil
}

// oneOf returns what one of several spellings of a field has.
func oneOf(field string, spellings ...string) (value string, err error) {
	for _, s := range spellings {
		if s != "" && value != "" && s != value {
			return "", fmt.Errorf("%w: two spellings of %s differ: %.60q and %.60q", ErrInvalid, field, value, s)
		}
		if s != "" {
			value = s
		}
	}
	return value, nil
}

// in returns a message without the fields that a dialect doesn't have.
func in(m Message, d Dialect) Message {
	switch m := m.(type) {
	case *WorkOrderBatch:
		if d != DialectFutura {
			c := *m
			c.Module, c.OrderMAC, c.Priority, c.Items = "", "", 0, nil
			return &c
		}
	case *WorkOrderBatchResponse:
		if d != DialectFutura {
			c := *m
			c.OrderMAC, c.Partial, c.Outcomes, c.Items = "", false, nil, nil
			return &c
		}
	case *ExecuteBatch:
		c := *m
		c.MaxAttempts = clamp(m.MaxAttempts)
		if d == DialectChunk {
			c.WorkerConcurrency = 0
		}
		return &c
	case *RollCall:
		c := *m
		c.Batch = m.Batch && d != DialectStrand
		return &c
	case *RollCallResponse:
		c := *m
		c.BatchSupport = m.BatchSupport && d != DialectStrand
		return &c
	}
	return m
}

// wireForm is what is marshalled for a message in a dialect.
func wireForm(m Message, d Dialect) any {
	switch m := m.(type) {
	case *WorkOrderBatch:
		if d == DialectStrand {
			return orderForm{orderFields: (*orderFields)(m), StrandID: m.ChunkID}
		}
		return orderForm{orderFields: (*orderFields)(m), ChunkID: m.ChunkID}
	case *WorkOrderBatchResponse:
		if d != DialectFutura {
			return resultIn(m, d)
		}
	case *ExecuteBatchResponse:
		if d == DialectStrand {
			return replyForm{replyFields: (*replyFields)(m), Strands: m.Chunks}
		}
	}
	return m
}

// resultIn writes the ids under both of their spellings.
func resultIn(m *WorkOrderBatchResponse, d Dialect) resultForm {
	form := resultForm{
		Envelope: m.Envelope, RequestPlain: m.RequestID, RequestID: m.RequestID, Results: m.Results,
	}
	if form.Results == nil {
		form.Results = map[string]ItemResult{}
	}
	if d == DialectStrand {
		form.StrandPlain, form.StrandID = m.ChunkID, m.ChunkID
	} else {
		form.ChunkPlain, form.ChunkID = m.ChunkID, m.ChunkID
	}
	return form
}
