for k, v in pairs(echo) do rawset(v, 1, 2) end print(pcall(table.sort, g.a), next(g), rawlen(g.a), table.unpack(g.a), broken)
