import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Kafka 2.4's controller for other replicas: BOOTSTRAP_SERVERS orders-0=2,3 ...; `orders-0=` cancels what is under way.
 * No tool of Kafka 2.4 does.
 */
public class AlterReassignment {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        Map<TopicPartition, Optional<NewPartitionReassignment>> asked = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] sides = words[i].split("=", 2);
            int dash = sides[0].lastIndexOf('-');
            TopicPartition partition =
                new TopicPartition(sides[0].substring(0, dash), Integer.parseInt(sides[0].substring(dash + 1)));
            asked.put(partition, sides[1].isEmpty() ? Optional.empty() : Optional.of(new NewPartitionReassignment(
                Arrays.stream(sides[1].split(",")).map(Integer::valueOf).collect(Collectors.toList()))));
        }
        try (Admin admin = Admin.create(properties)) {
            admin.alterPartitionReassignments(asked).all().get();
        }
    }
}
