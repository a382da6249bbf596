print(g.a[2].b, echo.r[1], pcall(function() g.a[1] = 1 end)) local f, t = pairs(g) t.s = nil x = g y = echo
