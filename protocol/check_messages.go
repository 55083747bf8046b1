package protocol

func (m *HealthCheck) check(c *checker) { c.within("code", int64(m.Code), 0, 999) }

func (m *InstallFunction) check(c *checker) {
	c.required("cid", m.CID == "")
	c.part("cid", m.CID)
	c.line("manifest_url", m.ManifestURL, MaxText)
}

func (m *InstallFunctionResponse) check(c *checker) {
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	c.part("cid", m.CID)
}

func (m *RollCall) check(c *checker) {
	c.required("function_id", m.FunctionID == "")
	c.part("function_id", m.FunctionID)
	c.id("request_id", m.RequestID)
	c.consensus(m.Consensus)
	c.attributes(m.Attributes)
}

func (m *RollCallResponse) check(c *checker) {
	c.code("code", m.Code)
	c.part("function_id", m.FunctionID)
	c.id("request_id", m.RequestID)
}

func (m *FormCluster) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.names("peers", m.Peers)
	c.consensus(m.Consensus)
	c.most("connection_info", len(m.Connections), MaxNames, "entries")
	for _, p := range m.Connections {
		c.line("connection_info.ID", p.ID, MaxName)
		c.names("connection_info.Addrs", p.Addresses)
	}
}

func (m *FormClusterResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.code("code", m.Code)
	c.consensus(m.Consensus)
}

func (m *DisbandCluster) check(c *checker) { c.id("request_id", m.RequestID) }

func (m *Execute) check(c *checker) {
	c.function(m.FunctionID, m.Method)
	c.arguments("arguments", m.Arguments)
	c.parameters("parameters", m.Parameters)
	c.config(&m.Config)
	c.line("signature", m.Signature, MaxText)
	c.line("topic", m.Topic, MaxName)
}

func (m *ExecuteResponse) check(c *checker) {
	c.optionalID("request_id", m.RequestID)
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	left := c.enter("results")
	for peer, result := range m.Results {
		c.line("PEER", peer, MaxName)
		c.result(&result)
	}
	c.prefix = left
	c.line("cluster.main", m.Cluster.Main, MaxName)
	c.names("cluster.peers", m.Cluster.Peers)
}

func (m *WorkOrder) check(c *checker) {
	c.function(m.FunctionID, m.Method)
	c.arguments("arguments", m.Arguments)
	c.parameters("parameters", m.Parameters)
	c.config(&m.Config)
	c.line("signature", m.Signature, MaxText)
	c.id("request_id", m.RequestID)
}

func (m *WorkOrderResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.code("code", m.Code)
	left := c.enter("result")
	c.result(&m.Result)
	c.prefix = left
	c.text("error_message", m.Message, MaxText)
}

func (m *ExecuteBatch) check(c *checker) {
	c.line("topic", m.Topic, MaxName)
	c.template(&m.Template, m.Template.Method)
	c.items(m.Arguments)
	c.note("max_attempts", "32 bits")
}

func (m *ExecuteBatchResponse) check(c *checker) {
	c.optionalID("request_id", m.RequestID)
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	if m.AsSingle && len(m.Chunks) == 0 {
		c.fail(ErrInvalid, "chunks", "is missing: the type of a single execution needs it")
	}
	left := c.enter("chunks")
	for id, chunk := range m.Chunks {
		c.id("ID", id)
		c.line("peer", chunk.Peer, MaxName)
		c.results(chunk.Results)
	}
	c.prefix = left
}
