-- For wrk: sends the lines of a file as request bodies, or with GET if they are paths, in random order.
--
--   wrk … -s requests.lua URL -- PATH FILE SEED DEPTH
--
-- DEPTH requests are sent in one piece (HTTP pipelining). At the end it prints the numbers of completed and failed requests, and the
-- time within which 99% got a response.

local requests = {}
local depth = 1

function init(args)
    wrk.headers["Content-Type"] = "application/json"
    for body in io.lines(args[2]) do
        local is_path = body:sub(1, 1) == "/"
        requests[#requests + 1] = is_path and wrk.format("GET", body) or wrk.format("POST", args[1], nil, body)
    end
    math.randomseed(tonumber(args[3]))
    depth = tonumber(args[4])
end

function request()
    local piece = requests[math.random(#requests)]
    for _ = 2, depth do
        piece = piece .. requests[math.random(#requests)]
    end
    return piece
end

function done(summary, latency, errors)
    local e = summary.errors
    io.write(string.format("completed %d failed %d seconds %f late %f\n", summary.requests,
        e.status + e.connect + e.read + e.write + e.timeout, summary.duration / 1e6, latency:percentile(99) / 1e6))
end
